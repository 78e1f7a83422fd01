from PIL import Image  # tf

Image.open('a').save('b')
