/** A part of the document. */
export type JsonObject = { [name: string]: unknown };
