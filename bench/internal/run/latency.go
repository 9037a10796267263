package run

import (
	"fmt"
	"time"
)

// Latencies returns how long after it was sent each update was seen.
func Latencies(sent, seen map[string]time.Time) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, len(sent))
	for key, before := range sent {
		after, ok := seen[key]
		if !ok {
			return nil, fmt.Errorf("the update of %s was not seen", key)
		}
		latencies = append(latencies, after.Sub(before))
	}
	return latencies, nil
}
