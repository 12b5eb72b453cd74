/** One session on another machine that prints a lot: how long that takes to come here, and what it costs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openGround } from './fleet-ground.ts';
import { type Cpu, cpuOf, startRunner, sum, tinyClaude } from './fleet-scale.ts';

const lookMs = 5;
const lineBytes = 4_096;

/** Milliseconds between the first and the last of these bytes in the transcript here, and the CPU of all meanwhile. */
export async function shipTranscript(bytes: number): Promise<{ readonly ms: number; readonly cpu: Cpu }> {
  const ground = await openGround([{ name: 'a' }], {
    machines: { one: { slots: 1 } },
    claude: (folder) => {
      const head = '{"type":"stream_event","event":{"type":"ping","pad":"';
      const line = `${head}${'x'.repeat(lineBytes - head.length - 4)}"}}\n`;
      writeFileSync(join(folder, 'printed'), line.repeat(Math.ceil(bytes / lineBytes)));
      return tinyClaude;
    },
    env: { ANTHROPIC_API_KEY: 'test-key', BENCH_STEP_SECONDS: '0' },
    envOf: (folder) => ({ BENCH_PRINT: join(folder, 'printed') }),
    leaseMs: 60_000,
    config: { where: 'fleet' },
  });
  const { world } = ground.group;
  try {
    const runner = startRunner(ground, tinyClaude);
    const all = () => sum([runner.pid, ground.machines.one?.pid ?? 0, ground.server.pid].map(cpuOf));
    const { transcript } = ground.group.session('a');
    const size = () => world.files.info(transcript)?.size ?? 0;
    while (size() === 0 && runner.exitCode === null) await Bun.sleep(lookMs);
    const [begin, before] = [performance.now(), all()];
    while (size() < bytes && runner.exitCode === null) await Bun.sleep(lookMs);
    const [ms, after] = [performance.now() - begin, all()];
    if ((await runner.exited) !== 0) throw new Error(`group run ended with ${runner.exitCode}`);
    return { ms, cpu: { own: after.own - before.own, started: after.started - before.started } };
  } finally {
    await ground.close();
  }
}
