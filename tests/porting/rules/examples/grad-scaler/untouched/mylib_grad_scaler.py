from mylib import GradScaler

scaler = GradScaler()
