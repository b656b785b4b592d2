/** The document of an embeddings answer. `base64`: each vector as its 32-bit floats, little-endian. */
export function embeddingsList(
  vectors: readonly Float32Array[],
  { model, tokens, base64 }: { model: string; tokens: number; base64: boolean },
): object {
  return {
    object: 'list',
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: base64
        ? Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
        : [...vector],
    })),
    model,
    usage: embeddingsUsage(tokens),
  };
}

export function embeddingsUsage(tokens: number): { prompt_tokens: number; total_tokens: number } {
  return { prompt_tokens: tokens, total_tokens: tokens };
}
