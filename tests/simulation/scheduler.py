"""One thread runs at a time, and a seed decides which: every interleaving of store calls can happen, and replays.

Writers are ordinary code in threads of their own. At each yield point (before the effect of each store call, and in a
sleep) the running thread draws the next one and hands it the baton. One yield point for each call is enough: between
two effects a writer does nothing that another could see. How often a schedule lets the same writer go on differs from
schedule to schedule: rare switches find other mistakes than frequent ones, and every order has a chance in all of them.
Time is simulated: it moves a little at each step, and to the next alarm when everybody sleeps.
"""

import _thread
import random
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

START = 1_700_000_000.0


class Workers:
    """Threads that outlive a schedule, for starting one costs more than a whole schedule has."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.batons = [_thread.allocate_lock() for _ in range(count)]
        self.finished = _thread.allocate_lock()
        self.jobs: list[Callable[[], None] | None] = [None] * count
        self.finished.acquire()
        for baton in self.batons:
            baton.acquire()
        for number in range(count):
            _thread.start_new_thread(self._run, (number,))

    def _run(self, number: int) -> None:
        while True:
            self.batons[number].acquire()
            job = self.jobs[number]
            if job is None:
                return
            job()

    def stop(self) -> None:
        self.jobs = [None] * self.count
        for baton in self.batons:
            baton.release()


class Scheduler:
    """One schedule. It is also the clock of all that takes part in it."""

    def __init__(self, workers: Workers, rng: random.Random, *, step_s: float = 0.002) -> None:
        self._workers = workers
        self._rng = rng
        self._step_s = step_s
        self._stay = (0.0, 0.4, 0.7, 0.9)[int(rng.random() * 4)]
        self._alive: list[int] = []
        self._wake: list[float] = []
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._now = START
        self._serial = 0
        self.running = 0
        self.steps = 0
        self.errors: list[BaseException] = []

    def run(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run all jobs to their ends; then what is still due later (`at`) happens."""
        self._alive = list(range(len(jobs)))
        self._wake = [0.0] * len(jobs)
        for number, job in enumerate(jobs):
            self._workers.jobs[number] = self._job(number, job)
        self._pass_on()
        self._workers.finished.acquire()
        while self._alarms:
            self._ring()
        if self.errors:
            raise self.errors[0]

    def _job(self, number: int, job: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                job()
            except BaseException as error:  # handed to the thread that runs the schedule
                self.errors.append(error)
            self._alive.remove(number)
            if self._alive:
                self._pass_on()
            else:
                self._workers.finished.release()

        return run

    def _pass_time(self) -> None:
        self._now += self._rng.random() * self._step_s
        while self._alarms and self._alarms[0][0] <= self._now:
            heappop(self._alarms)[2]()

    def _choose(self) -> int:
        self.steps += 1
        while True:
            self._pass_time()
            ready = [number for number in self._alive if self._wake[number] <= self._now]
            if ready:
                return ready[int(self._rng.random() * len(ready))]
            self._now = min(self._wake[number] for number in self._alive)

    def _pass_on(self) -> None:
        self.running = self._choose()
        self._workers.batons[self.running].release()

    def switch(self) -> None:
        """A yield point."""
        if not self._alive:
            return  # the schedule is over: the caller is a check
        me = self.running
        if self._rng.random() < self._stay and self._wake[me] <= self._now:
            self.steps += 1
            self._pass_time()
            return
        chosen = self._choose()
        if chosen != me:
            self.running = chosen
            self._workers.batons[chosen].release()
            self._workers.batons[me].acquire()

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        """Let `action` happen `delay_s` from now, whoever runs then."""
        self._serial += 1
        heappush(self._alarms, (self._now + delay_s, self._serial, action))

    def leap(self, seconds: float) -> None:
        """Let a long time pass at once; what is due meanwhile happens at its own time."""
        until = self._now + seconds
        while self._alarms and self._alarms[0][0] <= until:
            self._ring()
        self._now = until

    def _ring(self) -> None:
        due, _, action = heappop(self._alarms)
        self._now = max(self._now, due)
        action()

    # --- the clock ------------------------------------------------------------------------------------------------

    def now_ms(self) -> int:
        return int(self._now * 1000)

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._wake[self.running] = self._now + seconds
        self.switch()


class WriterClock:
    """The clock of one process: it may be wrong by as much as `span_s`, and jump within that at any time."""

    def __init__(self, scheduler: Scheduler, rng: random.Random, span_s: float) -> None:
        self._scheduler = scheduler
        self._rng = rng
        self._span_ms = span_s * 1000
        self._wrong_ms = 0
        self._jump()

    def _jump(self) -> None:
        self._wrong_ms = int((self._rng.random() * 2.0 - 1.0) * self._span_ms)

    def now_ms(self) -> int:
        if self._rng.random() < 0.1:
            self._jump()
        return self._scheduler.now_ms() + self._wrong_ms

    def monotonic(self) -> float:
        return self._scheduler.monotonic()

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds)
