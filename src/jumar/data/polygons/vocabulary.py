"""Words to render: signs, prices and numbers, and Chinese words of frequent characters.

Every fourth word, number and character is reserved for the test part, so that scores are of words
not seen in training.
"""

import numpy as np

_WORDS = (
    "EXIT OPEN CLOSED SALE STOP PARKING STREET AVENUE STATION PLATFORM TICKETS INFORMATION HOTEL "
    "Restaurant Coffee Bakery Market Pharmacy Bank Post Office Library Museum Theatre Cinema "
    "School University Hospital Police Fire Emergency Entrance Push Pull Danger Warning Caution "
    "private Staff only Welcome to the new fresh daily best price from all for with and of in on "
    "Total Amount Cash Change Receipt Invoice Date Number Tax Thank you please call us today now "
    "Monday Tuesday Friday Sunday January June October floor level north south east west centre "
    "book water bread fruit garden river bridge tower square airport gate terminal bus taxi train"
)

_CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下"
    "过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都"
    "两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重"
    "新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想"
    "已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知"
)

WORDS = _WORDS.split()
LATIN = "".join(sorted(set("".join(WORDS)) | set("0123456789$%&.,:;!?-+/()@#")))
"""Every character of drawn Latin words."""
CHINESE = "".join(sorted(set(_CHARACTERS)))
"""Every character of drawn Chinese words."""


def drawn_word(chinese: bool, random: np.random.Generator, *, test: bool) -> str:
    """Draw a word, number, price, date or phone number; or one to six Chinese characters."""

    def drawn(count: int) -> int:
        """Draw one of `count` indices, of which every fourth belongs to the test part."""
        quarter, rest = divmod(count, 4)
        if test:
            return int(random.integers(quarter)) * 4 + 3
        index = int(random.integers(quarter * 3 + rest))
        return index // 3 * 4 + index % 3

    if chinese:
        indices = [drawn(len(CHINESE)) for _ in range(int(random.integers(1, 7)))]
        return "".join(CHINESE[index] for index in indices)
    kind = float(random.random())
    if kind < 0.75:
        word = WORDS[drawn(len(WORDS))]
        return (word, word.upper(), word.capitalize(), word.lower())[int(random.integers(4))]
    first, second, third = drawn(1000), drawn(100), int(random.integers(1, 13))
    numbers = (f"{first}", f"${first}.{second}", f"{second}%", f"{second}/{third}", f"#{first}")
    return (*numbers, f"+{first}-{second}{third}", f"({second})", f"No.{first}")[
        int(random.integers(8))
    ]
