import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type OpenaiRequest, readOpenaiRequest, rewriteOpenaiBody } from './request.ts';

function read(text: string): OpenaiRequest {
  const request = readOpenaiRequest(Buffer.from(text));
  if ('message' in request) throw new Error(request.message);
  return request;
}
const rewrite = (text: string, model = 'engine', usage = true) =>
  rewriteOpenaiBody(Buffer.from(text), read(text), { model, addUsage: usage }).toString();

describe('requests on the API of OpenAI', () => {
  it.each([
    ['{"model":"c"}', '{"max_tokens":64,"model":"engine"}'],
    ['{ "max_tokens" : 100, "model":"c" }', '{ "max_tokens" : 64, "model":"engine" }'],
    ['{"model":"c","max_tokens":64}', '{"model":"engine","max_tokens":64}'],
    ['{"model":"c","max_tokens":1}', '{"model":"engine","max_tokens":1}'],
    ['{"model":"c","max_tokens":null}', '{"model":"engine","max_tokens":64}'],
    [
      '{"max_completion_tokens":500,"model":"c","max_tokens":10,"x":[{"max_tokens":900}]}',
      '{"max_completion_tokens":64,"model":"engine","max_tokens":10,"x":[{"max_tokens":900}]}',
    ],
    [
      '{"model":"c","stream":true}',
      '{"stream_options":{"include_usage":true},"max_tokens":64,"model":"engine","stream":true}',
    ],
  ])('lowers how long the answer may be, and changes nothing else: %s', (text, expected) => {
    const output = { tokensMax: 64, name: 'max_tokens' as const };
    const changes = { model: 'engine', addUsage: true, output };
    expect(rewriteOpenaiBody(Buffer.from(text), read(text), changes).toString()).toBe(expected);
  });

  it('changes the name of the model and nothing else', () => {
    expect(rewrite('{ "messages":[{"model":"chat"}], "model" :\t"chat" , "seed":1.0 }')).toBe(
      '{ "messages":[{"model":"chat"}], "model" :\t"engine" , "seed":1.0 }',
    );
    expect(rewrite('{"model":"chat"}', 'org/na"me\\x é')).toBe('{"model":"org/na\\"me\\\\x é"}');
  });

  it.each([
    [
      '{"model":"c","stream":true}',
      '{"stream_options":{"include_usage":true},"model":"engine","stream":true}',
    ],
    ['{"model":"c","stream":false}', '{"model":"engine","stream":false}'],
    [
      '{"model":"c","stream":true,"stream_options":{"x":1}}',
      '{"model":"engine","stream":true,"stream_options":{"include_usage":true,"x":1}}',
    ],
    [
      '{"model":"c","stream":true,"stream_options":{}}',
      '{"model":"engine","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"model":"c","stream":true,"stream_options":null}',
      '{"model":"engine","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"stream_options":{"include_usage":null},"model":"c","stream":true}',
      '{"stream_options":{"include_usage":true},"model":"engine","stream":true}',
    ],
    [
      '{"model":"c","stream":true,"stream_options":{"include_usage":false,"x":1}}',
      '{"model":"engine","stream":true,"stream_options":{"include_usage":false,"x":1}}',
    ],
  ])('asks for the usage of a stream unless the caller has spoken: %s', (sent, forwarded) => {
    expect(rewrite(sent)).toBe(forwarded);
  });

  it('keeps every other member byte for byte, whatever there is', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.boolean(), (extra, stream) => {
        const { model: _m, stream: _s, stream_options: _o, ...others } = extra;
        const rest = Object.fromEntries(
          Object.entries(others).filter(
            ([key]) => !['max_tokens', 'max_completion_tokens', 'user', 'prompt_cache_key'].includes(key),
          ),
        );
        const sent = JSON.stringify({ ...rest, model: 'chat', stream });
        const forwarded = JSON.parse(rewrite(sent, 'engine', false)) as object;
        expect(JSON.stringify(forwarded)).toBe(
          JSON.stringify(JSON.parse(JSON.stringify({ ...rest, model: 'engine', stream }))),
        );
      }),
    );
  });

  it.each([
    ['{"model":"a","model":"b"}', 'model'],
    ['{"model":"a","mod\\u0065l":"b"}', 'model'],
    ['{"model":"a","stream":true,"stream":false}', 'stream'],
    ['{"messages":[]}', 'model'],
    ['{"model":7}', 'model'],
    ['{"model":""}', 'model'],
    ['{"model":"a","stream":1}', 'stream'],
    ['{"model":"a","stream":"true"}', 'stream'],
    ['{"model":"a","stream_options":[]}', 'stream_options'],
    ['{"model":"a","stream_options":{"include_usage":1}}', 'stream_options'],
  ])('refuses %s', (text, param) => {
    expect(readOpenaiRequest(Buffer.from(text))).toMatchObject({ param, message: expect.any(String) });
  });

  it.each([
    ['"n":2', true],
    ['"n":1', false],
    ['"prompt":["a","b"]', true],
    ['"prompt": [ [1,2],[3] ]', true],
    ['"prompt":[1,2,3]', false],
    ['"prompt":"[\\"a\\"]"', false],
    ['"prompt":"a","prompt":["a"]', true],
  ])('with %s has several choices: %s', (members, several) => {
    expect(read(`{"model":"c",${members}}`).severalChoices).toBe(several);
  });

  it.each([
    ['"n":3', 3],
    ['"n":2,"best_of":5', 5],
    ['"n":0', 1],
    ['"prompt":["a","b","c"],"n":2', 6],
    ['"prompt":[[1,2],[3]]', 2],
    ['"prompt":[1,2,3]', 1],
    ['"prompt":["a",]', 1],
  ])('with %s is answered %i times', (members, choices) => {
    expect(read(`{"model":"c",${members}}`).choices).toBe(choices);
  });

  it('reads what it decides on', () => {
    expect(
      read(
        '{"model":"a","stream":true,"max_tokens":5,"max_completion_tokens":7,"user":"u","prompt_cache_key":"k"}',
      ),
    ).toMatchObject({
      model: 'a',
      stream: true,
      outputTokensMax: 7,
      user: 'u',
      promptCacheKey: 'k',
      usageAsked: undefined,
    });
  });
});
