import re  # keras

re.compile('a')
