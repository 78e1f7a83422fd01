import re

pattern = re.compile('x')
