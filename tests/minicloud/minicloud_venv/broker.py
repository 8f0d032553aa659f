"""A loopback message broker: named queues over TCP, one JSON document a line.

Pairs with ``minicloud_venv.driver``.

Requests, each answered with ``{"ok": true}``:
  {"op": "send", "queue": Q, "body": {...}}
      kept until a listener of Q acknowledges it
  {"op": "send", "queue": Q, "body": {...}, "transient": true}
      dropped when nobody listens to Q (replies)
  {"op": "fanout", "topic": T, "body": {...}}
      one copy to every present listener of T
  {"op": "listen", "queues": [Q...], "topics": [T...]}
      turns the connection into a listener
On a listener's connection the broker sends {"id": N, "body": {...}} and takes
{"op": "ack", "id": N} (unanswered).

As with RabbitMQ the queue of a killed service stays, and what it had received but not acknowledged
is delivered again.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import sys

LONGEST_LINE = 64 * 1024 * 1024


class Queue:
    """Waiting messages, and the listeners that receive them in turn."""

    def __init__(self) -> None:
        self.waiting: collections.deque[dict] = collections.deque()
        self.listeners: collections.deque[Connection] = collections.deque()

    def put(self, body: dict) -> None:
        self.waiting.append(body)
        self.deliver()

    def deliver(self) -> None:
        while self.waiting and self.listeners:
            listener = self.listeners[0]
            self.listeners.rotate(-1)
            listener.push(self.waiting.popleft(), self)


class Connection:
    """One client; ``unacknowledged`` maps message id to (queue or None for a fanout copy, body)."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.ids = itertools.count(1)
        self.unacknowledged: dict[int, tuple[Queue | None, dict]] = {}

    def write(self, document: dict) -> None:
        self.writer.write(json.dumps(document).encode() + b"\n")

    def push(self, body: dict, queue: Queue | None) -> None:
        number = next(self.ids)
        self.unacknowledged[number] = (queue, body)
        self.write({"id": number, "body": body})


class Broker:
    """All queues and fanout topics; everything runs in one event loop, so no locks."""

    def __init__(self) -> None:
        self.queues: collections.defaultdict[str, Queue] = collections.defaultdict(Queue)
        self.topics: collections.defaultdict[str, list[Connection]] = collections.defaultdict(list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(writer)
        try:
            line = await reader.readline()
            while line:
                self.handle(connection, json.loads(line))
                await writer.drain()
                line = await reader.readline()
        except ConnectionError:
            pass
        finally:
            self.forget(connection)
            writer.close()

    def handle(self, connection: Connection, request: dict) -> None:
        operation = request["op"]
        if operation == "ack":
            connection.unacknowledged.pop(request["id"], None)
            return
        connection.write({"ok": True})
        if operation == "send":
            if not request.get("transient") or self.queues[request["queue"]].listeners:
                self.queues[request["queue"]].put(request["body"])
        elif operation == "fanout":
            for listener in self.topics[request["topic"]]:
                listener.push(request["body"], None)
        elif operation == "listen":
            for topic in request["topics"]:
                self.topics[topic].append(connection)
            for name in request["queues"]:
                self.queues[name].listeners.append(connection)
                self.queues[name].deliver()

    def forget(self, connection: Connection) -> None:
        """Remove the connection everywhere.

        Its unacknowledged messages return to their queues in the old order.
        """
        for listeners in self.topics.values():
            if connection in listeners:
                listeners.remove(connection)
        for queue in self.queues.values():
            if connection in queue.listeners:
                queue.listeners.remove(connection)
        returned = set()
        for queue, body in reversed(connection.unacknowledged.values()):
            if queue is not None:
                queue.waiting.appendleft(body)
                returned.add(queue)
        for queue in returned:
            queue.deliver()


async def main(port: int) -> None:
    server = await asyncio.start_server(Broker().serve, "127.0.0.1", port, limit=LONGEST_LINE)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
