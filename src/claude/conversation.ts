/**
 * Whether claude has kept a conversation, that is, whether `--resume` can work.
 */
import { join } from 'node:path';
import type { World } from '../world/world.ts';

/**
 * True when the transcript is in the config dir. The folder below projects/ is named after the project's path by
 * rules of claude's own, so all of them are looked into. After a hard kill the file may be missing or empty.
 */
export function conversationExists(world: World, configDir: string, claudeSessionId: string): boolean {
  const projects = join(configDir, 'projects');
  return world.files.list(projects).some((folder) => {
    const info = world.files.info(join(projects, folder, `${claudeSessionId}.jsonl`));
    return info?.kind === 'file' && info.size > 0;
  });
}
