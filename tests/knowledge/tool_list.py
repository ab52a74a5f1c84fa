"""Tool lists as agents are given them: made up here, in the three forms, with what their schemas commonly hold."""

from __future__ import annotations


def _tool(name: str, description: str, required: str = "", defs: dict | None = None, **properties) -> dict:
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    closed = {**parameters, "additionalProperties": False, **({"$defs": defs} if defs else {})}
    return {"name": name, "description": description, "parameters": closed}


TEXT = {"type": "string"}
DATE = {"type": "string", "format": "date"}
WHEN = {"type": "string", "format": "date-time", "description": "RFC 3339"}
EXPRESSION = {
    "expression": {
        "anyOf": [
            {"type": "number"},
            {"type": "string", "pattern": "^[a-z]$"},
            {
                "type": "object",
                "properties": {
                    "op": {"enum": ["+", "-", "*", "/", "^"]},
                    "args": {"type": "array", "items": {"$ref": "#/$defs/expression"}, "minItems": 1, "maxItems": 3},
                },
                "required": ["op", "args"],
                "additionalProperties": False,
            },
        ]
    }
}
CONDITION = {
    "condition": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "and"}, "of": {"$ref": "#/$defs/conditions"}},
             "required": ["kind", "of"], "additionalProperties": False},
            {"type": "object", "properties": {"kind": {"const": "is"}, "column": TEXT,
                                              "value": {"type": ["string", "number", "null"]}},
             "required": ["kind", "column", "value"], "additionalProperties": False},
            {"type": "object", "properties": {"kind": {"const": "between"}, "column": TEXT, "low": {"type": "number"},
                                              "high": {"type": "number"}},
             "required": ["kind", "column", "low", "high"], "additionalProperties": False},
        ]
    },
    "conditions": {"type": "array", "items": {"$ref": "#/$defs/condition"}, "minItems": 1},
}  # fmt: skip

FUNCTIONS = [
    _tool("get_weather", "Weather at a place.", "city", city=TEXT, unit={"enum": ["celsius", "fahrenheit"]}),
    _tool("forecast", "Weather for some days.", "city days", city=TEXT,
          days={"type": "integer", "minimum": 1, "maximum": 14}),
    _tool("web_search", "Search the web.", "query", query={"type": "string", "minLength": 1, "maxLength": 200},
          count={"type": "integer", "minimum": 1, "maximum": 50, "default": 10}, site={"type": ["string", "null"]}),
    _tool("open_page", "Read a page.", "url", url={"type": "string", "format": "uri"}),
    _tool("create_event", "Put an event into the calendar.", "title start", title=TEXT, start=WHEN, end=WHEN,
          attendees={"type": "array", "items": {"type": "string", "format": "email"}, "maxItems": 20},
          repeat={"type": "object", "properties": {"every": {"enum": ["day", "week", "month"]},
                                                   "times": {"type": "integer", "minimum": 1}},
                  "required": ["every"], "additionalProperties": False}),
    _tool("list_events", "Events between two days.", "", first=DATE, last=DATE),
    _tool("delete_event", "Remove an event.", "id", id={"type": "string", "format": "uuid"}),
    _tool("read_file", "Read a file, or some lines of it.", "path", path={"type": "string", "pattern": "^[^\\x00]+$"},
          lines={"type": "array", "prefixItems": [{"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1}],
                 "items": False, "minItems": 2}),
    _tool("write_file", "Write a file.", "path content", path=TEXT, content=TEXT, append={"type": "boolean"}),
    _tool("list_folder", "What is in a folder.", "", path=TEXT, depth={"type": "integer", "minimum": 0, "maximum": 5}),
    _tool("run_sql", "Run a query.", "query", query=TEXT, database={"enum": ["sales", "stock"]},
          parameters={"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}}),
    _tool("select_rows", "Rows under conditions.", "table where", CONDITION,
          table={"type": "string", "pattern": "^[a-z_]+$"},
          where={"$ref": "#/$defs/condition"}, limit={"type": "integer", "minimum": 1, "maximum": 1000}),
    _tool("calculate", "Compute an expression.", "of", EXPRESSION, of={"$ref": "#/$defs/expression"}),
    _tool("convert", "Convert money.", "amount to", amount={"type": "number", "exclusiveMinimum": 0},
          **{"from": {"type": "string", "pattern": "^[A-Z]{3}$"}}, to={"type": "string", "pattern": "^[A-Z]{3}$"}),
    _tool("send_mail", "Send a mail.", "to subject", subject=TEXT, body=TEXT,
          to={"type": "array", "items": {"type": "string", "format": "email"}, "minItems": 1}),
    _tool("now", "The time."),
]  # fmt: skip

RESPONSES = [
    {"type": "function", "strict": True,
     **_tool("set_light", "A light.", "room", room={"enum": ["kitchen", "hall"]},
             level={"type": "integer", "minimum": 0, "maximum": 100, "multipleOf": 5})},
    {"type": "function", **_tool("book_table", "Book a table.", "day guests", day=DATE,
                                 guests={"type": "integer", "minimum": 1, "maximum": 12},
                                 at={"type": "string", "pattern": "^(1[1-9]|2[0-2]):(00|30)$"})},
    {"type": "function",
     **_tool("translate", "Translate a text.", "text to", text=TEXT, to={"enum": ["de", "fr", "日本語"]})},
    {"type": "function", **_tool("draw", "Draw shapes.", "shapes", shapes={"type": "array", "items": {"anyOf": [
        {"type": "object", "properties": {"circle": {"type": "number", "minimum": 0}}, "required": ["circle"]},
        {"type": "object",
         "properties": {"box": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}},
         "required": ["box"]}]}})},
]  # fmt: skip

MCP = {
    "tools": [
        {"name": "fs.search", "title": "Search", "description": "Find files.",
         "inputSchema": {"type": "object",
                         "properties": {"glob": TEXT, "hidden": {"type": "boolean", "default": False}},
                         "required": ["glob"]}, "annotations": {"readOnlyHint": True}},
        {"name": "git-log",
         "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
                         "$schema": "http://json-schema.org/draft-07/schema#"}},
        {"name": "tag", "inputSchema": {"type": "object", "properties": {
            "labels": {"type": "object", "patternProperties": {"^[a-z]+$": TEXT},
                       "additionalProperties": False}}}},
        {"name": "pick", "inputSchema": {"type": "object", "properties": {
            "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True,
                        "minItems": 1}}}},
        {"name": "ping", "inputSchema": {"type": "object"}},
    ]
}  # fmt: skip

OPENAI = [{"type": "function", "function": tool} for tool in FUNCTIONS]
EVERY = {"openai": OPENAI, "responses": RESPONSES, "mcp": MCP}


def schema_of(tool: dict) -> dict:
    """The JSON Schema of a tool's arguments."""
    tool = tool.get("function", tool)
    return tool.get("parameters") or tool.get("inputSchema")


def named(tools) -> dict[str, dict]:
    """Tool name -> the schema of its arguments."""
    listed = tools["tools"] if isinstance(tools, dict) else tools
    return {tool.get("function", tool)["name"]: schema_of(tool) for tool in listed}
