// Drives one real pg-boss for a test: JSON lines {id, method, args} on stdin, {id, result | error} on stdout.
// usage: node driver.mjs <directory that holds node_modules>
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const require = createRequire(join(process.argv[2], 'package.json'))
const pgboss = await import(pathToFileURL(require.resolve('pg-boss')))

let boss
let clock
const events = []
const works = new Map()

// What pg-boss does not have, or has in a form that JSON cannot carry.
const extras = {
  /** Make the instance and start it; `testClock` (epoch milliseconds) makes its time stand still there. */
  async start ({ testClock, ...options }) {
    if (testClock !== undefined) {
      clock = new pgboss.TestClock(testClock)
      options.clock = clock
    }
    boss = new pgboss.PgBoss(options)
    for (const kind of ['error', 'warning', 'bam', 'flow']) {
      boss.on(kind, data => events.push({ kind, data: data instanceof Error ? told(data) : data }))
    }
    await boss.start()
  },

  async stop (options) {
    await boss.stop({ graceful: false, ...options })
  },

  /** Errors, warnings and the like since the last call. */
  events: () => events.splice(0),

  /** A worker whose handler returns `returns`, throws `throws`, or, with `waits`, goes on when released. */
  async work (queue, options, { returns, throws, waits = false } = {}) {
    const work = { seen: [], ended: 0, release: () => {} }
    const gate = waits ? new Promise(resolve => { work.release = resolve }) : null
    works.set(queue, work)
    return await boss.work(queue, options, async jobs => {
      work.seen.push(...jobs.map(job => ({ ...job, signal: undefined, at: Date.now() })))
      await gate
      work.ended += jobs.length
      if (throws !== undefined) throw new Error(throws)
      return returns
    })
  },

  /** What the queue's handler was given so far; each job with the moment it came in. */
  seen: queue => works.get(queue).seen,

  /** How many jobs the queue's handler is through with. */
  ended: queue => works.get(queue).ended,

  /** Let a waiting handler go on. */
  release: queue => works.get(queue).release(),

  setTime: milliseconds => clock.setTime(milliseconds),
  tick: milliseconds => clock.tick(milliseconds),

  async sql (text, values = []) {
    return (await boss.getDb().executeSql(text, values)).rows
  },

  /** One of the package's own functions, such as getRollbackPlans. */
  package: (name, ...args) => pgboss[name](...args),

  /** Many calls in one round trip. */
  async all (calls) {
    return await Promise.all(calls.map(([method, ...args]) => answer(method, args)))
  }
}

function told (error) {
  return { name: error.name, message: error.message, code: error.code, constraint: error.constraint, stack: error.stack }
}

async function answer (method, args) {
  if (Object.hasOwn(extras, method)) return await extras[method](...args)
  if (typeof boss?.[method] !== 'function') throw new Error(`pg-boss has no method ${method}, or was not started`)
  return await boss[method](...args)
}

// A moment cannot be written in JSON: {"$date": "2030-01-01T00:00:00Z"} stands for a Date.
function revive (_key, value) {
  return typeof value?.$date === 'string' ? new Date(value.$date) : value
}

function reply (message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}

for (const level of ['log', 'info', 'debug']) console[level] = console.error
process.on('unhandledRejection', error => events.push({ kind: 'unhandled', data: told(error) }))
process.stdout.on('error', () => process.exit(0))

createInterface({ input: process.stdin })
  .on('line', async line => {
    const { id, method, args } = JSON.parse(line, revive)
    try {
      const result = await answer(method, args)
      reply({ id, result: result ?? null })
    } catch (error) {
      reply({ id, error: told(error) })
    }
  })
  .on('close', () => process.exit(0))
