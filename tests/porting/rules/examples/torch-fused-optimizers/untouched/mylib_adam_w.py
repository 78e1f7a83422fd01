from mylib import AdamW

opt = AdamW(parameters, fused=True)
