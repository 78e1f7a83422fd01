from tensorflow.contrib.learn.python.learn import monitored_session as ms
from npu_bridge.npu_init import npu_config_proto

with ms.MonitoredSession(session_creator=ms.ChiefSessionCreator(config=npu_config_proto())) as sess:
    sess.run(step)
