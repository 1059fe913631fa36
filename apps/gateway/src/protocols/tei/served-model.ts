import { MillraceError, type ModelDescription, type Settings } from '@millrace/shared';
import type { ModelDirectory } from '../../inference/model-directory.js';
import { requireTexts } from '../limits.js';

/**
 * The model of addresses that name none: that of the setting `teiModel`, or the first text-embedding model of
 * `models`. One before it that no worker has announced yet might be that: it is waited for, not passed over.
 * @throws MillraceError `no_worker` or `model_not_found`.
 */
export function unnamedModel(
  directory: ModelDirectory,
  { teiModel, models }: Pick<Settings, 'teiModel' | 'models'>,
): ModelDescription {
  if (teiModel !== '') return requireTexts(directory.resolve(teiModel));
  for (const name of models.length > 0 ? models : directory.names()) {
    const model = directory.resolve(name);
    if (model.task === 'text-embedding') return model;
  }
  throw new MillraceError(
    'model_not_found',
    'No text-embedding model is served here. Set MILLRACE_TEI_MODEL to the name of one.',
    { field: 'model' },
  );
}
