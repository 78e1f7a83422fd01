from mine.tpu import RunConfig

RunConfig(master='')
