// What one process at a time does for the whole fleet. Nothing is held while it is done: whoever does not show up again in
// time has lost the duty to whoever asks next.
import { type Queryable, sql } from './database.js'

const TAKE = sql`
  INSERT INTO redrive.duty AS d (name, holder, until)
  VALUES ($1, $2, coalesce($4::timestamptz, now()) + $3::double precision * interval '1 millisecond')
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
  WHERE d.holder = excluded.holder OR d.until <= coalesce($4::timestamptz, now())
  RETURNING true AS taken`

/** Takes or keeps a duty for so long; false: another process has it. */
export async function takeDuty(db: Queryable, name: string, holder: string, forMs: number): Promise<boolean> {
  return (await db.query(TAKE, [name, holder, forMs, db.now()])).length === 1
}

const LEAVE = sql`DELETE FROM redrive.duty WHERE name = $1 AND holder = $2`

/** Leaves it to whoever asks next. */
export async function leaveDuty(db: Queryable, name: string, holder: string): Promise<void> {
  await db.query(LEAVE, [name, holder])
}
