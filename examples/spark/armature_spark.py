"""Rows of a Spark partition through Armature, with back-pressure. Nothing but Python's own library is needed.

    client = Armature("http://127.0.0.1:7070", key=None)
    answers = rows.rdd.mapPartitions(client.embeddings("embeddings"))                  # one by one, as they come
    answers = rows.rdd.mapPartitions(client.batches(chat_of, job="nightly-2026-11-30"))  # as files, at priority batch

Rows have an `id` (a text, unique in the job) and a `text`. Each gives one Answer with the same id: `value` (JSON) where it
was answered, else `error`. What passes is waited out and never an error: 429, 503 (not before `retry-after`), an engine
that fails, a connection that breaks.
"""

import hashlib
import http.client
import json
import random
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, Optional

PASSES = (408, 429, 500, 502, 503, 504)
ROWS_FAULT = (400, 413, 422)
PAUSE_MAX_S = 30
DAY_S = 24 * 3600


class Answer(NamedTuple):
    id: str
    value: Optional[str]
    error: Optional[str]


class Refused(Exception):
    """What will not pass: a 4xx that stays one."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status


class Abandoned(Exception):
    """Nobody takes the answers of this partition any more."""


class Armature:
    """`patience_s`: how long one request is tried. After that the task fails, and Spark's own retries rule."""

    def __init__(self, address, key=None, patience_s=3600, counters=None):
        self.address = address.rstrip("/")
        self.key = key
        self.patience_s = patience_s
        self.counters = counters or {}  # Spark accumulators by name: asked, waited

    def embeddings(self, model, together=16, in_flight=4):
        """For mapPartitions: vectors of `row.text`, `together` rows a request and at most `in_flight` requests of a
        partition at one time. Rows are taken from Spark only as answers are taken, so that memory stays bounded."""

        def ask(rows, gate):
            body = {"model": model, "input": [row.text for row in rows]}
            try:
                data = self._call("POST", "/v1/embeddings", body, gate)["data"]
                vectors = {entry["index"]: entry["embedding"] for entry in data}
                return [Answer(row.id, json.dumps(vectors[i]), None) for i, row in enumerate(rows)]
            except Refused as refused:
                if refused.status not in ROWS_FAULT:
                    raise
                if len(rows) == 1:
                    return [Answer(rows[0].id, None, str(refused))]
            # One row that is refused must not take the others with it.
            return [answer for row in rows for answer in ask([row], gate)]

        def partition(rows):
            gate = Gate(in_flight)
            try:
                yield from windowed(chunks(rows, together), lambda chunk: ask(chunk, gate), in_flight)
            finally:
                gate.abandon()

        return partition

    def batches(self, request_of, endpoint="/v1/chat/completions", job="job", lines=10_000, poll_s=2):
        """For mapPartitions: each row as a line of a batch, whose body `request_of(row)` gives. A partition has one batch
        of at most `lines` lines at a time; Armature spreads them over its engines and waits out what passes.

        A batch is named by `job` and what is in it. A task that Spark runs again finds the batch of the one before it, and
        no line is asked twice, even where Spark gives it the rows in another order."""

        def partition(rows):
            for chunk in chunks(rows, lines):
                chunk.sort(key=lambda row: row.id)
                asked = [
                    {"custom_id": row.id, "method": "POST", "url": endpoint, "body": request_of(row)} for row in chunk
                ]
                content = "".join(json.dumps(line) + "\n" for line in asked).encode()
                name = f"{job}/{hashlib.sha256(content).hexdigest()[:32]}"
                batch = self._find(name) or self._start(name, content, endpoint)
                answers = dict(self._results(self._wait(batch, poll_s)))
                for row in chunk:
                    yield answers.pop(row.id, Answer(row.id, None, "the batch has no answer for it"))

        return partition

    def _find(self, name):
        """A batch of this name that runs, or whose results are still there."""
        after = ""
        while True:
            page = self._call("GET", f"/v1/batches?limit=100{after}")
            for batch in page["data"]:
                alive = batch["status"] in ("validating", "in_progress", "finalizing", "completed")
                if alive and (batch.get("metadata") or {}).get("name") == name and self._is_there(batch):
                    return batch
            if not page.get("has_more"):
                return None
            after = f"&after={page['data'][-1]['id']}"

    def _is_there(self, batch):
        try:
            for file in filter(None, (batch["output_file_id"], batch["error_file_id"])):
                self._call("GET", f"/v1/files/{file}")
            return True
        except Refused:
            return False

    def _start(self, name, content, endpoint):
        uploaded = self._upload(content)
        return self._call(
            "POST",
            "/v1/batches",
            {
                "input_file_id": uploaded["id"],
                "endpoint": endpoint,
                "completion_window": "24h",
                "metadata": {"name": name},
                "output_expires_after": {"anchor": "created_at", "seconds": DAY_S},
            },
            # Where only the answer was lost, the batch is there already.
            before_again=lambda: self._find(name),
        )

    def _upload(self, content):
        mark = uuid.uuid4().hex
        fields = {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": str(2 * DAY_S)}
        head = "".join(
            f'--{mark}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        head += (
            f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="rows.jsonl"\r\n'
            "content-type: application/jsonl\r\n\r\n"
        )
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        return self._call("POST", "/v1/files", body, kind=f"multipart/form-data; boundary={mark}")

    def _wait(self, batch, poll_s):
        while batch["status"] in ("validating", "in_progress", "finalizing", "cancelling"):
            time.sleep(poll_s)
            batch = self._call("GET", f"/v1/batches/{batch['id']}")
        if batch["status"] == "failed":
            raise RuntimeError(f"batch {batch['id']} was refused: {json.dumps(batch['errors'])}")
        return batch

    def _results(self, batch):
        for file in filter(None, (batch["output_file_id"], batch["error_file_id"])):
            for line in self._call("GET", f"/v1/files/{file}/content", text=True).splitlines():
                result = json.loads(line)
                response, error = result.get("response"), result.get("error")
                good = error is None and response and response["status_code"] == 200
                yield result["custom_id"], Answer(
                    result["custom_id"],
                    json.dumps(response["body"]) if good else None,
                    None if good else json.dumps(error or response),
                )

    def _call(self, method, path, body=None, gate=None, kind="application/json", text=False, before_again=None):
        """The answer's JSON, or its text. Raises Refused for what will not pass, and the last trouble where it lasts
        longer than the patience. What `before_again` finds before another try is the answer."""
        gate = gate or Gate(1)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        last_try = time.monotonic() + self.patience_s
        pause_s, again = 0.5, False
        while True:
            with gate:
                if again and before_again and (found := before_again()):
                    return found
                again = True
                self._count("asked")
                try:
                    answer = self._send(method, path, data, kind)
                    gate.went_well()
                    return answer.decode() if text else json.loads(answer)
                except urllib.error.HTTPError as error:
                    words = error.read(2000).decode(errors="replace")
                    if error.code not in PASSES:
                        raise Refused(error.code, words) from None
                    trouble, after = f"{error.code}: {words}", error.headers.get("retry-after")
                except (OSError, http.client.HTTPException) as error:
                    trouble, after = str(error), None
                pause_s = min(PAUSE_MAX_S, pause_s * 2)
                # Up to a quarter later than told, so that partitions do not all come back in the same moment.
                wait_s = max(float(after), 0.1) if after and after.isdigit() else pause_s
                wait_s *= random.uniform(1, 1.25)
                if time.monotonic() + wait_s > last_try:
                    raise TimeoutError(f"{method} {path}: no answer in {self.patience_s} s; the last trouble: {trouble}")
                self._count("waited")
                print(f"armature: {method} {path} waits {wait_s:.1f} s: {trouble[:300]}", file=sys.stderr)
                gate.hold(wait_s)

    def _send(self, method, path, data, kind):
        headers = {"content-type": kind}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(self.address + path, data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()

    def _count(self, name):
        if name in self.counters:
            self.counters[name].add(1)


class Gate:
    """How many requests of a partition may be on their way: half as many whenever one was told to wait, one more after
    each round that went well, and none at all until the time that was told is over."""

    def __init__(self, limit):
        self.limit = limit
        self.allowed = limit
        self.running = 0
        self.well = 0
        self.closed_until = 0.0
        self.abandoned = False
        self.changed = threading.Condition()

    def __enter__(self):
        with self.changed:
            while True:
                if self.abandoned:
                    raise Abandoned()
                wait_s = self.closed_until - time.monotonic()
                if wait_s <= 0 and self.running < self.allowed:
                    break
                self.changed.wait(wait_s if wait_s > 0 else None)
            self.running += 1

    def __exit__(self, *_):
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def abandon(self):
        with self.changed:
            self.abandoned = True
            self.changed.notify_all()

    def hold(self, wait_s):
        with self.changed:
            self.closed_until = max(self.closed_until, time.monotonic() + wait_s)
            self.allowed = max(1, self.allowed // 2)
            self.well = 0

    def went_well(self):
        with self.changed:
            self.well += 1
            if self.well >= self.allowed and self.allowed < self.limit:
                self.allowed += 1
                self.well = 0
                self.changed.notify_all()


def chunks(rows, size):
    rows = iter(rows)
    while chunk := list(islice(rows, size)):
        yield chunk


def windowed(work, do, size):
    """What `do` gives for each piece of work, in order; `size` pieces are under way, and no more is taken than that."""
    pool = ThreadPoolExecutor(size)
    running = deque()
    try:
        for piece in work:
            running.append(pool.submit(do, piece))
            if len(running) >= size:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
