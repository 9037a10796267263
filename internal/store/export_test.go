package store

// Constants for the tests of a Sweeper.
const (
	SweepPeriod = sweepPeriod
	BudgetCheck = budgetPeriod
)
