// Requests to the server.

/** The initial data of the page. */
export const start = JSON.parse(document.getElementById("data").textContent);

function asked(path, body, signal) {
  return fetch(`api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Constrained-Token": start.token },
    body: JSON.stringify(body),
    signal,
  });
}

const gone = { error: { message: "the playground doesn't answer", hint: "is `constrained playground` still running?" } };

/**
 * Ask once.
 * @returns {Promise<object>} the answer; {error: {message, hint}} where there is none
 */
export async function ask(path, body = {}) {
  try {
    return await (await asked(path, body)).json();
  } catch {
    return gone;
  }
}

/**
 * Ask, and take the answer's lines as they come.
 * @param {(message: object) => void} take
 * @param {AbortSignal} signal  ends it
 */
export async function listen(path, body, take, signal) {
  try {
    const reader = (await asked(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) take(JSON.parse(line));
    }
  } catch (error) {
    if (error.name !== "AbortError") take(gone);
  }
}

/** One request at a time. Of the requests made meanwhile only the latest is sent; outdated answers are dropped. */
export class Latest {
  /**
   * @param {string} path
   * @param {(answer: object, question: object) => void} take
   */
  constructor(path, take) {
    this.path = path;
    this.take = take;
    this.busy = false;
    this.waiting = null;
  }

  async ask(question) {
    this.waiting = question;
    if (this.busy) return;
    this.busy = true;
    while (this.waiting !== null) {
      const now = this.waiting;
      this.waiting = null;
      const answer = await ask(this.path, now);
      if (this.waiting === null) this.take(answer, now);
    }
    this.busy = false;
  }
}
