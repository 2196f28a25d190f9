// Options without those that were not given: with exact types, undefined is not the same as left out.
type Given<T> = { [Key in keyof T as undefined extends T[Key] ? Key : never]?: Exclude<T[Key], undefined> } & {
  [Key in keyof T as undefined extends T[Key] ? never : Key]: T[Key]
}

export const without = <T extends object>(options: T): Given<T> =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
