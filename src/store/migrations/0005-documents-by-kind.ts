/** How many there are of a kind is counted with each one that is added: without their bodies. */
export const documentsByKind = `
  CREATE INDEX documents_by_kind ON documents (kind);
`;
