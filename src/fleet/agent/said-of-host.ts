/** What people and runners have said of this machine: that it is drained, or that its login was refused. */
import type { FleetEngine } from '../engine.ts';
import { isDrained, isLoginRefused } from '../registry.ts';
import type { HostAbilities } from '../wire.ts';

export class SaidOfHost {
  readonly #engine: FleetEngine;
  readonly #name: string;
  #isDrained = false;
  #isLoginRefused = false;
  #isInDoubt = false;

  constructor(engine: FleetEngine, name: string) {
    this.#engine = engine;
    this.#name = name;
  }

  get isDrained(): boolean {
    return this.#isDrained;
  }

  get takesNew(): boolean {
    return !this.#isDrained && !this.#isLoginRefused;
  }

  /** Something may have been said just now: it is asked for before anything new is taken. */
  doubt(): void {
    this.#isInDoubt = true;
  }

  async askInDoubt(abilities: HostAbilities | undefined): Promise<void> {
    if (this.#isInDoubt) await this.ask(abilities);
  }

  /** `abilities`: as they are now. Without an answer it is as it was, but for a login. */
  async ask(abilities: HostAbilities | undefined): Promise<void> {
    this.#isInDoubt = false;
    const drained = await isDrained(this.#engine, this.#name);
    if (drained.ok) this.#isDrained = drained.value;
    this.#isLoginRefused = await isLoginRefused(this.#engine, this.#name, abilities);
  }
}
