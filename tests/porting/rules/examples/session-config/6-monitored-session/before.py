from tensorflow.contrib.learn.python.learn import monitored_session as ms

with ms.MonitoredSession() as sess:
    sess.run(step)
