"""A row of GSM8K."""

SODA = {
    "question": "He brought $2 for sodas at $.25 an ounce and leaves with $.50. How many ounces did he buy?",
    "answer": "He spent $1.5 because 2 - .5 = <<2-.5=1.5>>1.5\n"
    "He bought 6 ounces because 1.5/ .25 = <<1.5/.25=6>>6\n#### 6",
}
