// Paths of the API: names may hold anything, a slash too.

export const path = (strings: TemplateStringsArray, ...names: readonly string[]): string =>
  String.raw({ raw: strings }, ...names.map(encodeURIComponent))
