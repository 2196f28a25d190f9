// What can be stored and carried: JSON, nothing more.
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
