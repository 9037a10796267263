package cli

import (
	"testing"
	"time"
)

// SetAccountInterval sets the time between two looks at the credentials of an exec program until the test
// ends.
func SetAccountInterval(t *testing.T, interval time.Duration) {
	before := accountInterval
	accountInterval = interval
	t.Cleanup(func() { accountInterval = before })
}
