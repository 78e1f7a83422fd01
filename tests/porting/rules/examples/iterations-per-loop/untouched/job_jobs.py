for job in jobs:
    runner.run(job.train_op)
