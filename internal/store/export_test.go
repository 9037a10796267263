package store

// What the tests of a Sweeper wait for.
const (
	SweepPeriod = sweepPeriod
	BudgetCheck = check
)
