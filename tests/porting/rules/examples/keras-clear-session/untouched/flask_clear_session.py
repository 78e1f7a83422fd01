from flask import session

session.clear_session()
