"""oslo.messaging driver ``loopback://127.0.0.1:PORT/VHOST``.

For the broker of ``minicloud_venv.broker``.

oslo.messaging's own ``fake://`` lives inside one process, and everything else needs a broker to be
installed. Interface and duties: ``oslo_messaging._drivers.base``. A message's body on the wire:
  {"context": {...}, "message": {...}, "id": UUID, "reply": queue or null,
   "monitor": seconds or null}
and a reply's: {"id": UUID, "result": ..., "failure": serialized exception or null} or
{"id": UUID, "alive": true}.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import oslo_messaging
from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

from minicloud_venv import wire


class Incoming(base.RpcIncomingMessage):
    """A request, or a notification, that a service received."""

    def __init__(self, driver: LoopbackDriver, body: dict, acknowledge: Callable[[], None]) -> None:
        super().__init__(body["context"], body["message"])
        self.msg_id = body["id"]
        self.client_timeout = body["monitor"]
        self._driver = driver
        self._reply_queue = body["reply"]
        self._acknowledge = acknowledge

    def acknowledge(self) -> None:
        self._acknowledge()

    def requeue(self) -> None:
        raise NotImplementedError

    def reply(self, reply: Any = None, failure: Any = None) -> None:
        if self._reply_queue:
            text = common.serialize_remote_exception(failure) if failure else None
            self._driver.answer(
                self._reply_queue, {"id": self.msg_id, "result": reply, "failure": text}
            )

    def heartbeat(self) -> None:
        if self._reply_queue:
            self._driver.answer(self._reply_queue, {"id": self.msg_id, "alive": True})


class Listener(base.PollStyleListener):
    """Collects messages of some queues; None in the inbox ends a poll."""

    def __init__(self, driver: LoopbackDriver, queues: list[str], topics: list[str]) -> None:
        super().__init__()
        self._driver = driver
        self._inbox: queue.Queue[Incoming | None] = queue.Queue()
        self._stopped = False
        self._receiver = wire.Receiver(driver.address, queues, topics, self._take)

    def _take(self, body: dict, acknowledge: Callable[[], None]) -> None:
        self._inbox.put(Incoming(self._driver, body, acknowledge))

    @base.batch_poll_helper
    def poll(self, timeout: float | None = None) -> Incoming | None:
        try:
            return self._inbox.get(block=not self._stopped, timeout=timeout)
        except queue.Empty:
            return None

    def stop(self) -> None:
        self._stopped = True
        self._receiver.close()
        self._inbox.put(None)


class Calls:
    """The calls of this process that wait for a reply.

    There is one private queue, and one inbox for each call.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self.queue = f"reply.{uuid.uuid4()}"
        self._waiting: dict[str, queue.Queue[dict]] = {}
        self._receiver = wire.Receiver(address, [self.queue], [], self._take)

    def _take(self, body: dict, acknowledge: Callable[[], None]) -> None:
        acknowledge()
        inbox = self._waiting.get(body["id"])
        if inbox is not None:
            inbox.put(body)

    def expect(self, call: str) -> None:
        self._waiting[call] = queue.Queue()

    def wait(self, call: str, timeout: float | None, monitor: float | None) -> dict:
        """Return the reply.

        A heartbeat of the server restarts the shorter ``monitor`` time, never the whole
        ``timeout``.
        """
        inbox = self._waiting[call]
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                spans = [
                    span
                    for span in (monitor, None if end is None else max(0.0, end - time.monotonic()))
                    if span is not None
                ]
                body = inbox.get(timeout=min(spans) if spans else None)
                if not body.get("alive"):
                    return body
        except queue.Empty:
            raise oslo_messaging.MessagingTimeout(
                f"Timed out waiting for a reply to message ID {call}"
            ) from None
        finally:
            del self._waiting[call]

    def close(self) -> None:
        self._receiver.close()


class LoopbackDriver(base.BaseDriver):
    """Entry point ``loopback`` of the group ``oslo.messaging.drivers``."""

    def __init__(
        self,
        conf: Any,
        url: Any,
        default_exchange: str | None = None,
        allowed_remote_exmods: list[str] | None = None,
    ) -> None:
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self.address = (url.hosts[0].hostname, url.hosts[0].port)
        self._vhost = url.virtual_host or ""
        self._start_afresh()
        # The services fork their workers after this object was created: a worker must not use its
        # parent's sockets and locks.
        os.register_at_fork(after_in_child=self._start_afresh)

    def _start_afresh(self) -> None:
        self._lock = threading.Lock()
        self._sender = wire.Sender(self.address)
        self._calls: Calls | None = None

    def _name(self, target: Any, *more: str) -> str:
        return "|".join(
            (self._vhost, target.exchange or self._default_exchange or "", target.topic, *more)
        )

    def _open_calls(self) -> Calls:
        with self._lock:
            if self._calls is None:
                self._calls = Calls(self.address)
            return self._calls

    def answer(self, reply_queue: str, body: dict) -> None:
        self._hand_over({"op": "send", "queue": reply_queue, "transient": True, "body": body})

    def _hand_over(self, request: dict) -> None:
        # jsonutils knows what services put into messages (dates, uuids, sets); the protocol has
        # plain types only.
        self._sender.request(jsonutils.loads(jsonutils.dumps(request)))

    def send(
        self,
        target: Any,
        ctxt: dict,
        message: dict,
        wait_for_reply: bool | None = None,
        timeout: float | None = None,
        call_monitor_timeout: float | None = None,
        retry: int | None = None,
        transport_options: Any = None,
    ) -> Any:
        call = str(uuid.uuid4())
        calls = self._open_calls() if wait_for_reply else None
        body = {
            "context": ctxt,
            "message": message,
            "id": call,
            "reply": calls.queue if calls else None,
            "monitor": call_monitor_timeout,
        }
        if calls:
            calls.expect(call)
        if target.fanout:
            self._hand_over({"op": "fanout", "topic": self._name(target), "body": body})
        else:
            self._hand_over(
                {
                    "op": "send",
                    "queue": self._name(target, *filter(None, [target.server])),
                    "body": body,
                }
            )
        if calls is None:
            return None
        reply = calls.wait(call, timeout, call_monitor_timeout)
        if reply["failure"]:
            raise common.deserialize_remote_exception(reply["failure"], self._allowed_remote_exmods)
        return reply["result"]

    def send_notification(
        self, target: Any, ctxt: dict, message: dict, version: float, retry: int | None = None
    ) -> None:
        self.send(target, ctxt, message)

    def listen(self, target: Any, batch_size: int, batch_timeout: float | None) -> base.Listener:
        queues = [self._name(target)]
        if target.server:
            queues.append(self._name(target, target.server))
        return base.PollStyleListenerAdapter(
            Listener(self, queues, [self._name(target)]), batch_size, batch_timeout
        )

    def listen_for_notifications(
        self,
        targets_and_priorities: Any,
        pool: str | None,
        batch_size: int,
        batch_timeout: float | None,
    ) -> base.Listener:
        if pool:
            raise NotImplementedError("pools of notification listeners")
        queues = [f"{self._name(target)}.{priority}" for target, priority in targets_and_priorities]
        return base.PollStyleListenerAdapter(Listener(self, queues, []), batch_size, batch_timeout)

    def cleanup(self) -> None:
        self._sender.close()
        with self._lock:
            if self._calls is not None:
                self._calls.close()
                self._calls = None
