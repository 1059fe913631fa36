import { DEFAULT_SCOPES, KEY_SCOPES, type Settings } from '@millrace/shared';
import { Command } from 'commander';
import { type BatchOptions, batchCommand, ENDPOINT, WINDOW } from './commands/batch.js';
import { compareCommand } from './commands/compare.js';
import { runGateway } from './commands/gateway.js';
import { makeKey } from './commands/keys.js';
import { listModelsCommand, prepareModels } from './commands/models.js';
import { profileCommand } from './commands/profile.js';
import { TUNE_SECONDS, tuneCommand } from './commands/tune.js';
import { runWorker } from './commands/worker.js';
import type { Host } from './host.js';
import { type Audience, addSettingFlags, settingsFrom } from './setting-flags.js';
import { loadCommand } from './tuning/load.js';
import { up } from './up/up.js';

const SETTINGS_NOTE = '\nEvery setting is a flag or an environment variable (in brackets); a flag wins.';

const VERSION_FLAGS = '-v, --version';
const HELP_NOTE = '(`--help` lists the commands, `COMMAND --help` the settings of one)';

/** What a command comes to: the process's exit code. */
type Action = (
  settings: Settings,
  host: Host,
  argument: string | undefined,
  options: Record<string, string | boolean>,
) => Promise<number>;

/** The whole command line. `exitWith` receives the exit code of the command that ran. */
export function buildProgram(host: Host, exitWith: (code: number) => void): Command {
  const program = new Command('millrace')
    .description('Serves ONNX models over HTTP from a durable queue.')
    .helpCommand('help [COMMAND]', 'Show what a command does and its settings.')
    .showHelpAfterError(HELP_NOTE)
    .version(host.version, VERSION_FLAGS);

  const add = (parent: Command, usage: string, audience: Audience, act: Action) => {
    const command = parent
      .command(usage)
      .version(host.version, VERSION_FLAGS)
      .addHelpText('after', SETTINGS_NOTE);
    addSettingFlags(command, audience).action(async (...given: unknown[]) => {
      const [argument] = given;
      const named = typeof argument === 'string' ? argument : undefined;
      exitWith(await act(await settingsFrom(command, host), host, named, command.opts()));
    });
    return command;
  };

  add(program, 'up', 'up', up).description(
    'Serve on this machine: a private Redis (or REDIS_URL), a gateway and workers, until Ctrl-C.',
  );
  add(program, 'gateway', 'gateway', runGateway).description(
    'Run one gateway on REDIS_URL. Any number may run, on any number of machines.',
  );
  add(program, 'worker', 'worker', runWorker).description(
    'Run one worker on REDIS_URL. Any number may run, on any number of machines.',
  );

  const models = program
    .command('models')
    .description('See the models there are, or make them ready ahead of a start.')
    .helpCommand(false)
    .version(host.version, VERSION_FLAGS);
  add(models, 'list', ['modelsDir'], listModelsCommand).description('List the models in the models folder.');
  add(models, 'prepare [NAME]', ['models', 'modelsDir', 'cacheDir'], prepareModels).description(
    'Fetch, check and build a model, or all that would be served.',
  );
  add(models, 'compare <NAME>', 'all', (settings, host, name = '') =>
    compareCommand(settings, host, name),
  ).description('Compare a quantized model with its FP32 original, on its held-out samples.');

  add(program, 'profile <MODEL>', 'worker', (settings, host, name = '', options) =>
    profileCommand(settings, host, name, options),
  )
    .option('--measure', 'Measure the cost curve anew instead of showing the stored one.')
    .option('--out <FILE>', 'Where the drawing of the curve goes. [default: MODEL-curve.svg]')
    .description('Show what runs of a model cost on this machine: its cost curve, drawn, and its nodes.');
  add(program, 'tune <MODEL>', 'worker', (settings, host, name = '', options) =>
    tuneCommand(settings, host, name, options),
  )
    .option('--seconds <N>', `About how long it may take. [default: ${TUNE_SECONDS}]`)
    .option(
      '--tolerance <X>',
      'How far outputs may be from those of the options in model.yaml. [default: 0.05]',
    )
    .description('Find the session options that serve most on this machine, and store them for serving.');
  program
    .command('load <SPEC>', { hidden: true })
    .description('Load a server; started by `millrace tune`.')
    .action(async (spec: string) => exitWith(await loadCommand(spec, host)));

  program
    .command('batch [FILE]')
    .description(
      'Run a file of requests at a server: send it, wait, and fetch the answers. FILE has a request a line ' +
        '(JSON Lines, plain or in gzip); - is standard input. Ctrl-C leaves it running there.',
    )
    .version(host.version, VERSION_FLAGS)
    .option('--url <URL>', 'The server. [MILLRACE_URL; default: where `millrace up` serves]')
    .option('--api-key <KEY>', 'An API key of the scopes infer and jobs. [MILLRACE_API_KEY]')
    .option('--endpoint <PATH>', `The address of lines that name none. [default: ${ENDPOINT}]`)
    .option(
      '--window <TIME>',
      `How long it may take, such as 90m, 24h or 7d; what is left then is not run. [default: ${WINDOW}]`,
    )
    .option('--out <FILE>', 'Where answers go. [default: beside FILE, as .out.jsonl]')
    .option('--errors <FILE>', 'Where lines that failed go, if any. [default: beside FILE, as .errors.jsonl]')
    .option('--resume <ID>', 'Come back to a batch that was left; FILE then only names the results.')
    .option('--pause <ID>', 'Hold a batch until it is resumed.')
    .option('--cancel <ID>', 'Take a batch back; what was answered by then is fetched by --resume.')
    .option('--delete', 'Delete its files at the server once the results are here.')
    .addHelpText(
      'after',
      '\nIt ends with 0 when all lines were answered, 2 when some failed, and 1 otherwise.',
    )
    .action(async (file: string | undefined, options: BatchOptions) =>
      exitWith(await batchCommand(file, options, host)),
    );
  program
    .command('keys <NAME>')
    .description('Make an API key: prints it once, and its entry for MILLRACE_API_KEYS.')
    .version(host.version, VERSION_FLAGS)
    .option(
      '--scope <SCOPE...>',
      `What it may be used for: ${KEY_SCOPES.join(', ')}. [default: ${DEFAULT_SCOPES.join(' ')}]`,
    )
    .action(async (name: string, { scope }: { scope?: string[] }) =>
      exitWith(await makeKey(name, scope, host)),
    );
  program
    .command('version')
    .description('Show the version.')
    .action(() => host.say(host.version));
  return program;
}
