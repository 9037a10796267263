package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// fuzzResult has the sums of the runs of one test.
type fuzzResult struct {
	Executions int64   `json:"executions"`
	Seconds    float64 `json:"seconds"`
	// Corpus is the number of inputs that reached new code.
	Corpus   int64 `json:"corpus"`
	Failures int   `json:"failures"`
}

// project is the prefix of the import paths of all modules.
const project = "github.com/crdcache/crdcache/"

// fuzzResults are the results of all tests, by target.key.
type fuzzResults map[string]fuzzResult

func readResults(path string) (fuzzResults, error) {
	merged := fuzzResults{}
	if path == "" {
		return merged, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return merged, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &merged); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return merged, nil
}

// write replaces the file atomically, so that a killed run does not damage it.
func (r fuzzResults) write(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (r fuzzResults) add(t target, run fuzzResult) {
	previous := r[t.key()]
	r[t.key()] = fuzzResult{
		Executions: previous.Executions + run.Executions, Seconds: previous.Seconds + run.Seconds,
		Corpus: max(previous.Corpus, run.Corpus), Failures: previous.Failures + run.Failures,
	}
}

func (r fuzzResults) executions() int64 {
	total := int64(0)
	for _, entry := range r {
		total += entry.Executions
	}
	return total
}

// section returns the sums of the results.
func (r fuzzResults) section() string {
	total := fuzzResult{}
	for _, entry := range r {
		total.Executions, total.Seconds, total.Failures = total.Executions+entry.Executions, total.Seconds+
			entry.Seconds, total.Failures+entry.Failures
	}
	return fmt.Sprintf("%s executions of %d tests in %.1f hours; %d runs of a test failed.\n",
		formatThousands(total.Executions), len(r), total.Seconds/3600, total.Failures)
}

// formatThousands separates the thousands of a number.
func formatThousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
