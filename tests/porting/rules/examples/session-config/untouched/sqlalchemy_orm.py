from sqlalchemy.orm import Session

with Session(engine) as session:
    pass
