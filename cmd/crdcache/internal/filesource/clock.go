package filesource

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"
)

// clock shows the newest time in files.
type clock struct{ newest atomic.Value } // a string

// pastTimes are fields of times that have passed. Others, such as an end of validity, can lie ahead.
var pastTimes = []string{"completionTime", "completionTimestamp", "creationTimestamp", "eventTime", "finishedAt",
	"lastHeartbeatTime", "lastObservedTime", "lastScheduleTime", "lastSuccessfulTime", "lastTimestamp",
	"lastTransitionTime", "lastUpdateTime", "renewTime", "startTime", "startTimestamp", "startedAt", "time"}

// read reads the times in an object. It must not be called concurrently.
func (c *clock) read(object []byte) {
	newest, _ := c.newest.Load().(string)
	for end := 0; ; {
		i := bytes.Index(object[end:], []byte(`Z"`))
		if i < 0 {
			return
		}
		end += i + 1
		value := object[max(0, end-len(time.RFC3339Nano)):end]
		if value = value[bytes.LastIndexByte(value, '"')+1:]; string(value) <= newest {
			continue
		}
		name := bytes.TrimRight(object[:end-len(value)], "\": \t\r\n")
		name = name[bytes.LastIndexByte(name, '"')+1:]
		_, err := time.Parse(time.RFC3339, string(value))
		if err == nil && slices.Contains(pastTimes, string(name)) {
			newest = string(value)
			c.newest.Store(newest)
		}
	}
}

// time returns the newest time, or zero if there is none.
func (c *clock) time() time.Time {
	newest, _ := c.newest.Load().(string)
	t, _ := time.Parse(time.RFC3339, newest)
	return t
}
