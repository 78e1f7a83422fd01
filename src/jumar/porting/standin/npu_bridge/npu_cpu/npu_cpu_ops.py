"""Operators on the host: their names, for a CPU TensorFlow has none of them."""

from npu_bridge_standin.device_ops import device_only

embeddingrankid = device_only("embeddingrankid")
embedding_local_index = device_only("embedding_local_index")
randomchoicewithmask = device_only("randomchoicewithmask")
batch_enqueue = device_only("batch_enqueue")
ocr_recognition_pre_handle = device_only("ocr_recognition_pre_handle")
ocr_detection_pre_handle = device_only("ocr_detection_pre_handle")
ocr_identify_pre_handle = device_only("ocr_identify_pre_handle")
batch_dilate_polys = device_only("batch_dilate_polys")
ocr_find_contours = device_only("ocr_find_contours")
dequeue = device_only("dequeue")
ocr_detection_post_handle = device_only("ocr_detection_post_handle")
warp_affine_v2 = device_only("warp_affine_v2")
resize_v2 = device_only("resize_v2")
resize_and_clip_polys = device_only("resize_and_clip_polys")
non_zero_with_value_shape = device_only("non_zero_with_value_shape")
host_feature_mapping = device_only("host_feature_mapping")
device_feature_mapping = device_only("device_feature_mapping")
host_feature_mapping_export = device_only("host_feature_mapping_export")
host_feature_mapping_import = device_only("host_feature_mapping_import")
dense_image_warp = device_only("dense_image_warp")
