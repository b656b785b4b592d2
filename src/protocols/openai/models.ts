/** OpenAI's list object of what can be called. */
export function modelsList(names: readonly string[], created: number): string {
  return JSON.stringify({ object: 'list', data: names.map((name) => modelObject(name, created)) });
}

export function modelObject(
  name: string,
  created: number,
): { id: string; object: 'model'; created: number; owned_by: string } {
  return { id: name, object: 'model', created, owned_by: 'armature' };
}
