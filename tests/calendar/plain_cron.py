"""Random cron rules, and when they are due: the semantics of docs/guide/recurring.md over Python's own zoneinfo, by trying local times
one after the other. It shares no code and no method with src/calendar."""
import bisect
import calendar
import datetime
import itertools
import zoneinfo

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
DAY = datetime.timedelta(days=1)
# No zone of the tests repeats more local time than this.
MOST_REPEATED = datetime.timedelta(hours=2)
HORIZON = datetime.timedelta(days=5 * 366)


class Field:
    """A list of items as text, and the values that they mean."""

    def __init__(self, low, last, names=(), first_name=0):
        self.low, self.last, self.names, self.first_name = low, last, names, first_name

    def name(self, random, value):
        if not self.names or random.random() < 0.6:
            return str(value)
        name = self.names[value - self.first_name]
        return random.choice((name, name.lower(), name.capitalize()))

    def item(self, random):
        """Text and values of one item. No range has equal ends: croniter takes "5-5" for all values, and we for one."""
        low, last = self.low, self.last
        first, second = sorted(random.sample(range(low, last + 1), 2))
        step = random.randint(1, min(last, 30))
        kind = random.randrange(6)
        if kind <= 1:
            return self.name(random, first), {first}
        if kind == 2:
            return f"{self.name(random, first)}-{self.name(random, second)}", set(range(first, second + 1))
        if kind == 3:
            return f"*/{step}", set(range(low, last + 1, step))
        if kind == 4:
            return f"{first}/{step}", set(range(first, last + 1, step))
        return f"{first}-{second}/{step}", set(range(first, second + 1, step))

    def items(self, random):
        chosen = [self.item(random) for _ in range(random.choice((1, 1, 1, 2, 3)))]
        return ",".join(text for text, _ in chosen), set().union(*(values for _, values in chosen))


SECOND, MINUTE, HOUR = Field(0, 59), Field(0, 59), Field(0, 23)
DAY_OF_MONTH, MONTH, WEEKDAY = Field(1, 31), Field(1, 12, MONTHS, 1), Field(0, 6, WEEKDAYS)


class Rule:
    """`text` is ours. `croniter` is the same rule for croniter, or None when croniter has another meaning for it or none."""

    def __init__(self, random):
        self.seconds, self.croniter_has_it = [0], True
        self.from_end, self.nth, self.last_weekdays = set(), set(), set()
        fields = []
        if random.random() < 0.1:
            text, seconds = SECOND.items(random)
            self.seconds = sorted(seconds)
            fields.append(text)
        fields.append(self.choose_times(random))
        fields.append(self.choose_days(random))
        self.month_text, self.months = ("*", set(range(1, 13))) if random.random() < 0.8 else MONTH.items(random)
        fields.append(self.month_text)
        fields.append(self.choose_weekdays(random))
        self.text = " ".join(fields)
        self.croniter = " ".join([*fields[:-1], self.croniter_weekdays]) if self.croniter_has_it else None

    def choose_times(self, random):
        minutes, self.minutes = ("*", set(range(60))) if random.random() < 0.05 else MINUTE.items(random)
        kind = random.random()
        if kind < 0.3:
            hours, self.hours = random.choice(("*", "*/1", "0-23")), set(range(24))
        elif kind < 0.7:  # where clocks change
            near = sorted(random.sample((0, 1, 2, 3, 4, 22, 23), random.randint(1, 3)))
            hours, self.hours = ",".join(map(str, near)), set(near)
        else:
            hours, self.hours = HOUR.items(random)
        self.minutes, self.hours = sorted(self.minutes), sorted(self.hours)
        return f"{minutes} {hours}"

    def choose_days(self, random):
        kind = random.random()
        self.days = set()
        if kind < 0.6:
            self.any_day = True
            return random.choice("*?")
        self.any_day = False
        if kind < 0.85:
            text, self.days = DAY_OF_MONTH.items(random)
            self.any_day = self.is_any(DAY_OF_MONTH, text, self.days)
            return text
        if kind < 0.93:
            self.from_end = {0}
            return "L"
        before = random.randint(0, 27)
        self.from_end, self.days, self.croniter_has_it = {before, 0}, {3}, False
        return f"L,3,L-{before}"

    def is_any(self, field, text, values):
        """Whether a day field is not restricted. croniter decides it in another way when all values are named."""
        if len(values) == field.last - field.low + 1:
            self.croniter_has_it = False
        return "*/1" in text.split(",")

    def choose_weekdays(self, random):
        kind = random.random()
        self.weekdays = set()
        self.any_weekday = kind < 0.6
        if self.any_weekday:
            self.croniter_weekdays = random.choice("*?")
            return self.croniter_weekdays
        if kind < 0.85:
            text, self.weekdays = WEEKDAY.items(random)
            if random.random() < 0.1:
                text, self.weekdays = "5-7", {5, 6, 0}
            self.any_weekday = self.is_any(WEEKDAY, text, self.weekdays)
            self.croniter_weekdays = text
            return text
        # croniter ignores the day of the month in such a rule.
        self.croniter_has_it = self.croniter_has_it and self.any_day
        weekday, number = random.randrange(7), random.randint(1, 5)
        name = WEEKDAY.name(random, weekday)
        if kind < 0.92:
            self.nth = {(weekday, number)}
            self.croniter_weekdays = f"{name}#{number}"
            return self.croniter_weekdays
        self.last_weekdays = {weekday}
        self.croniter_weekdays = f"L{weekday}"
        if kind < 0.97:
            return f"{name}L"
        # A mix, which croniter does not support.
        self.weekdays, self.croniter_has_it = {2}, False
        return f"TUE,{name}L"

    @property
    def names_hours(self):
        return len(self.hours) < 24

    def matches_day(self, date):
        if date.month not in self.months:
            return False
        length = calendar.monthrange(date.year, date.month)[1]
        weekday = date.isoweekday() % 7
        by_day = date.day in self.days or length - date.day in self.from_end
        by_weekday = (weekday in self.weekdays or (weekday, (date.day + 6) // 7) in self.nth
                      or (weekday in self.last_weekdays and date.day + 7 > length))
        if self.any_day or self.any_weekday:
            return (self.any_day or by_day) and (self.any_weekday or by_weekday)
        return by_day or by_weekday

    def matches_any_day(self):
        """The calendar repeats after 400 years; 29 February is on every weekday within 28 of them."""
        first = datetime.date(2000, 1, 1)
        return any(self.matches_day(first + n * DAY) for n in range(28 * 366))

    def local_times(self, begin, end):
        """All matching local times from `begin` on, in order; none that is after `end`."""
        date = begin.date()
        while date <= end.date():
            if self.matches_day(date):
                hours = self.hours[bisect.bisect_left(self.hours, begin.hour):] if date == begin.date() else self.hours
                for hour, minute, second in itertools.product(hours, self.minutes, self.seconds):
                    local = datetime.datetime(date.year, date.month, date.day, hour, minute, second)
                    if begin <= local <= end:
                        yield local
            date += DAY


def offset_at(zone, moment):
    return datetime.datetime.fromtimestamp(moment, zone).utcoffset()


def change_between(zone, early, late):
    """The first moment with another offset than `early` has; `late` is such a moment."""
    before = offset_at(zone, early)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (middle, late) if offset_at(zone, middle) == before else (early, middle)
    return late


def clock_changes(zone_name, years):
    """The moments of all clock changes of these years."""
    zone = zoneinfo.ZoneInfo(zone_name)
    hours = range(int(datetime.datetime(min(years), 1, 1, tzinfo=datetime.timezone.utc).timestamp()),
                  int(datetime.datetime(max(years) + 1, 1, 1, tzinfo=datetime.timezone.utc).timestamp()), 3600)
    return [change_between(zone, hour, hour + 3600) for hour in hours if offset_at(zone, hour) != offset_at(zone, hour + 3600)]


def moments_of(rule, zone, local):
    """When a matching local time is due: no moment, one or two, in order."""
    first, second = (int(local.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if first == second:
        return [first]
    if first < second:  # it comes twice
        return [first] if rule.names_hours else [first, second]
    # It does not exist: the offset before the gap makes it later than the gap, the one after the gap makes it earlier.
    return [change_between(zone, second, first)] if rule.names_hours else []


def next_after(rule, zone, after):
    """The first occurrence after the moment; None when there is none within five years."""
    here = datetime.datetime.fromtimestamp(after, zone).replace(tzinfo=None)
    found, until = None, here + HORIZON
    for local in rule.local_times(here - MOST_REPEATED, until):
        if found is not None and local > until:
            break
        for moment in moments_of(rule, zone, local):
            if moment > after and (found is None or moment < found):
                found = moment
                # A local time that is later may be due earlier only when it comes before a repeated one.
                until = local + MOST_REPEATED
        if found is not None and rule.names_hours:
            break
    return found
