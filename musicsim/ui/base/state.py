"""Old home of what is in keys, openers, address and uploads."""

from musicsim.ui.base.address import take_address as take_address
from musicsim.ui.base.keys import BESIDE as BESIDE
from musicsim.ui.base.keys import CHOSEN as CHOSEN
from musicsim.ui.base.keys import COLOUR_BY as COLOUR_BY
from musicsim.ui.base.keys import FOUND as FOUND
from musicsim.ui.base.keys import LIBRARY as LIBRARY
from musicsim.ui.base.keys import MODEL as MODEL
from musicsim.ui.base.keys import NOT_HERE as NOT_HERE
from musicsim.ui.base.keys import QUEUE_LIBRARY as QUEUE_LIBRARY
from musicsim.ui.base.keys import SECTION as SECTION
from musicsim.ui.base.keys import Key as Key
from musicsim.ui.base.keys import forget_library_state as forget_library_state
from musicsim.ui.base.keys import kept_keys as kept_keys
from musicsim.ui.base.openers import active_library as active_library
from musicsim.ui.base.openers import active_model as active_model
from musicsim.ui.base.openers import choices_of as choices_of
from musicsim.ui.base.openers import chosen_model as chosen_model
from musicsim.ui.base.openers import snapshot as snapshot
from musicsim.ui.base.openers import walk as walk
from musicsim.ui.base.openers import warm_up as warm_up
from musicsim.ui.base.uploads import EXAMPLE as EXAMPLE
from musicsim.ui.base.uploads import Upload as Upload
from musicsim.ui.base.uploads import example_of as example_of
