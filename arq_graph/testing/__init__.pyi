# Every public name, once. `X as X` is how a stub says that it passes a name on.

from .chat import Chat as Chat
from .chat import scripted_app as scripted_app
from .reached import assert_reached as assert_reached
from .script import Script as Script
from .scripted_model import scripted_model as scripted_model
from .thresholds import assert_thresholds as assert_thresholds
