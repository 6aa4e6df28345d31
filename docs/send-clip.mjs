// Send a clip job with plain pg-boss, wait for it, print the result.
//   DATABASE_URL=postgresql://… node send-clip.mjs https://example.com/talk.mp4 61.5 92
import { PgBoss } from 'pg-boss'

const [source, start, end] = process.argv.slice(2)
const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, supervise: false, schedule: false })
await boss.start()
const id = await boss.send('clip', { source, start: Number(start), end: Number(end) })
let job
do {
  await new Promise(resolve => setTimeout(resolve, 250))
  job = (await boss.findJobs('clip', { id }))[0]
} while (!['completed', 'failed', 'cancelled'].includes(job.state))
console.log(JSON.stringify({ state: job.state, output: job.output }))
await boss.stop()
