package filesource

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/internal/manifest"
)

// clock shows the newest time in files.
type clock struct {
	byReading map[reading]string // settle and read are not called concurrently
	newest    atomic.Value       // the greatest, a string
}

// reading is one reading of a file, the readCount-th.
type reading struct {
	file      *manifest.File
	readCount int
}

// settle sets the time after files were read. isGone is loader.isGone.
func (c *clock) settle(isGone func(f *manifest.File, readCount int) bool) {
	newest := ""
	for r, text := range c.byReading {
		if isGone(r.file, r.readCount) {
			delete(c.byReading, r)
		} else {
			newest = max(newest, text)
		}
	}
	c.newest.Store(newest)
}

// pastTimes are fields of times that have passed. Others, such as an end of validity, can lie ahead.
var pastTimes = []string{"completionTime", "completionTimestamp", "creationTimestamp", "eventTime", "finishedAt",
	"lastHeartbeatTime", "lastObservedTime", "lastScheduleTime", "lastSuccessfulTime", "lastTimestamp",
	"lastTransitionTime", "lastUpdateTime", "renewTime", "startTime", "startTimestamp", "startedAt", "time"}

// read reads the times in an object of a file. It must not be called concurrently.
func (c *clock) read(f *manifest.File, object []byte) {
	newest := c.byReading[reading{f, f.ReadCount}]
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
			c.byReading[reading{f, f.ReadCount}] = newest
		}
	}
}

// time returns the newest time, or zero if there is none.
func (c *clock) time() time.Time {
	newest, _ := c.newest.Load().(string)
	t, _ := time.Parse(time.RFC3339, newest)
	return t
}
