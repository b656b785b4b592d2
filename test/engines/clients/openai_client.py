"""Python's openai against BASE_URL with KEY; prints what it saw as one line of JSON."""

import json
import sys

import openai

base_url, key = sys.argv[1:3]
client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0)
messages = [{"role": "user", "content": "Hi"}]
seen = {}

answer = client.chat.completions.create(model="chat", messages=messages)
seen["chat"] = answer.choices[0].message.content
seen["usage"] = answer.usage.total_tokens

stream = client.chat.completions.create(
    model="chat", messages=messages, stream=True, stream_options={"include_usage": True}
)
text, usage = "", []
for event in stream:
    if event.usage:
        usage.append(event.usage.total_tokens)
    for choice in event.choices:
        text += choice.delta.content or ""
seen["stream"] = text
seen["stream_usage"] = usage

seen["embedding"] = client.embeddings.create(model="chat", input=["a"]).data[0].embedding
seen["completion"] = client.completions.create(model="chat", prompt="x").choices[0].text
seen["models"] = [model.id for model in client.models.list()]


def error(call):
    try:
        call()
    except openai.APIError as caught:
        return [type(caught).__name__, getattr(caught, "status_code", None), caught.code]
    return None


def read(model):
    for _ in client.chat.completions.create(model=model, messages=messages, stream=True):
        pass


stranger = client.with_options(api_key="sk-nobody")
seen["errors"] = {
    "unknown": error(lambda: client.chat.completions.create(model="nowhere", messages=messages)),
    "stranger": error(lambda: stranger.chat.completions.create(model="chat", messages=messages)),
    "failing": error(lambda: client.chat.completions.create(model="failing", messages=messages)),
    "bad": error(lambda: client.chat.completions.create(model="bad", messages=messages)),
    "cut": error(lambda: read("cut")),
}

with client.chat.completions.create(model="endless", messages=messages, stream=True) as endless:
    for count, _ in enumerate(endless):
        if count == 3:
            break
seen["left"] = True

print(json.dumps(seen))
