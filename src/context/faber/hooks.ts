/** Hooks of faber: from an event of claude to what the model is told. */
import type { ContextSystem } from '../hook-call.ts';

export const faber: ContextSystem = { name: 'faber', answer: () => ({ text: '' }) };
