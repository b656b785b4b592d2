import { describe, expect, it } from 'vitest';
import { backendOf, startArmature } from '../upstream/armature.ts';
import { startEngine } from '../upstream/engine.ts';
import { answerByPath } from '../upstream/scripts.ts';

/** What callers and engines say reaches the other side byte for byte, save for what must change. */

const NUMBERS = '"big":18446744073709551615,"f":1.0,"e":1e400,"minus":-0.0';

async function world() {
  const stack = new AsyncDisposableStack();
  const engine = stack.use(await startEngine());
  const armature = stack.use(
    await startArmature({
      backends: { b1: backendOf(engine), t1: backendOf(engine, { engine: 'oip' }) },
      routes: { chat: { targets: [{ backend: 'b1' }] }, tensor: { targets: [{ backend: 't1' }] } },
    }),
  );
  return { engine, armature, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** The top-level members of an object as text, spelling kept; good enough for the flat texts used here. */
const without = (text: string, ...members: RegExp[]) =>
  members.reduce((rest, one) => rest.replace(one, ''), text);

describe('bytes', () => {
  it.each([
    [
      'chat',
      '/v1/chat/completions',
      `{ "messages" : [{"role":"user","content":"\\"model\\":\\"chat\\" \\u00e9 \\ud83d\\ude00"}],\n\t"parallel_tool_calls":false,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"model":"chat"}}}],\r\n "model" :  "chat" , ${NUMBERS},"zz":{"a" : [ ]} }`,
    ],
    [
      'completions',
      '/v1/completions',
      `{"model":"chat","prompt":["x"],"logit_bias":{"50256":-100},${NUMBERS}}`,
    ],
    ['embeddings', '/v1/embeddings', `{"input":[[1,2],[3]],"dimensions":2,${NUMBERS},"model":"chat"}`],
  ])('of a request (%s) reach the engine, the model aside', async (_, path, body) => {
    await using it = await world();
    expect((await it.armature.ask({ path, body })).status).toBe(200);
    const wanted = body.replace(/("model" ?: *)"chat"(?=[ ,}])(?!\}\})/, '$1"engine-model"');
    expect(it.engine.posts[0]!.body.toString()).toBe(wanted);
    expect(it.engine.posts[0]!.path).toBe(path);
  });

  it('of tensors reach the engine, the model being in the path', async () => {
    await using it = await world();
    const body = `{"id":"r1", "inputs":[{"name":"x","datatype":"INT64","shape":[2],"data":[9223372036854775807,-1]}],"parameters":{"model":"tensor",${NUMBERS}}}`;
    expect((await it.armature.ask({ path: '/v2/models/tensor/infer', body })).status).toBe(200);
    expect(it.engine.posts[0]!.body.toString()).toBe(body);
    expect(it.engine.posts[0]!.path).toBe('/v2/models/engine-model/infer');
  });

  it('of answers reach the caller, the model aside', async () => {
    await using it = await world();
    const chat = `{"id":"c", "object":"chat.completion","model":"engine-model",${NUMBERS},"choices":[{"index":0,"message":{"role":"assistant","content":"\\u00e9 caf\u00e9","reasoning":"r"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"v":[ ]} ,"zz":null}`;
    it.engine.script = (x) => x.json(Buffer.from(chat));
    const answer = await it.armature.ask({
      path: '/v1/chat/completions',
      body: '{"model":"chat","messages":[]}',
    });
    const model = /"model":"[^"]*",/;
    expect(without(answer.content.toString(), model)).toBe(without(chat, model));

    const infer = `{"model_name":"engine-model","outputs":[{"name":"y","datatype":"INT64","shape":[1],"data":[9223372036854775807]}],${NUMBERS}}`;
    it.engine.script = (x) => x.json(Buffer.from(infer));
    const tensors = await it.armature.ask({ path: '/v2/models/tensor/infer', body: '{"inputs":[]}' });
    const name = /"model_name":"[^"]*",/;
    expect(without(tensors.content.toString(), name)).toBe(without(infer, name));
  });

  it('of stream events reach the caller, the model aside', async () => {
    await using it = await world();
    const event = `{"id":"c1", "choices":[{"index":0,"delta":{"content":"a \\"model\\":\\"engine-model\\" \\u00e9"},"finish_reason":"stop"}],${NUMBERS},"model":"engine-model","obfuscation":"aB"}`;
    it.engine.script = async (x) => {
      await x.sseHead();
      await x.event(event);
      await x.event('[DONE]');
      await x.end();
    };
    const answer = await it.armature.ask({
      path: '/v1/chat/completions',
      body: '{"model":"chat","messages":[],"stream":true}',
    });
    const model = /"model":"[^"]*",/;
    expect(answer.events.map(({ data }) => without(data, model))).toEqual([without(event, model), '[DONE]']);
  });

  it('that cannot be decided on are refused aloud, never guessed at', async () => {
    await using it = await world();
    it.engine.script = answerByPath;
    const twice = '{"model":"chat","messages":[],"model":"other"}';
    const refused = await it.armature.ask({ path: '/v1/chat/completions', body: twice });
    expect([refused.status, refused.error.code]).toEqual([400, 'invalid_request']);
    const escaped = '{"mod\\u0065l":"chat","messages":[]}';
    const read = await it.armature.ask({ path: '/v1/chat/completions', body: escaped });
    expect(read.status).toBe(200);
    expect(it.engine.posts.map((request) => request.json().model)).toEqual(['engine-model']);
  });
});
