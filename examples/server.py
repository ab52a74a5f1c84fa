"""An HTTP server that writes the next action: any agent, in any language, can ask it.

A request names the knowledge, the actions done so far and what is in view; the answer is one action that the knowledge
admits there:

    $ python examples/server.py --port 8080 &
    $ curl -s localhost:8080 -d '{"knowledge": "hotpotqa", "path": [], "prompt": "Question: who directed Jaws?\\n"}'
    {"action": "Search[...]"}

It answers one request at a time and listens on the loopback address only; a production server would batch.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from constrained import ActionKnowledge, ConstrainedError, compile_grammar
from constrained.decoding import generate
from constrained.models import load

MAX_REQUEST_BYTES = 1_000_000


def next_action(loaded, request):
    """The action that `loaded` chooses among those admitted after the request's path."""
    knowledge = ActionKnowledge.from_lark(request["knowledge"]).bind_view(request.get("view", {}))
    for action in request.get("path", []):
        knowledge = knowledge.after(action)
    compiled = compile_grammar(knowledge.next_action(), loaded.vocabulary)
    return generate(loaded, request.get("prompt", ""), compiled, max_new_tokens=request.get("max_tokens", 60)).text


def make_server(loaded, port=0):
    """A server on the loopback address; port 0 takes any free one (`server.server_port`)."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers.get("Content-Length", 0))
            if length > MAX_REQUEST_BYTES:
                return self.answer(413, {"error": f"a request has at most {MAX_REQUEST_BYTES} bytes"})
            try:
                request = json.loads(self.rfile.read(length))
                return self.answer(200, {"action": next_action(loaded, request)})
            except ConstrainedError as error:
                return self.answer(422, {"error": str(error)})
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return self.answer(400, {"error": f"not a request: {error!r}"})

        def answer(self, status, body):
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    return HTTPServer(("127.0.0.1", port), Handler)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args(arguments)
    server = make_server(load(options.model), options.port)
    print(f"listening on http://127.0.0.1:{server.server_port}")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
