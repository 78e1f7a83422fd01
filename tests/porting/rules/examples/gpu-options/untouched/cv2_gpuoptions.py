import cv2

gpu_options = cv2.GPUOptions()
