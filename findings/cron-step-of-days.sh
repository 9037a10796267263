#!/usr/bin/env bash
# robfig/cron v3.0.1, which reads the schedules of Kubernetes' CronJobs: one would expect that "0 0 */2 * MON"
# means the Mondays with an odd day of the month. In the cron of Linux distributions a field that begins with
# a star does not restrict, and the two fields for days are alternatives only if both restrict. Version 1.2.0
# of the library follows this. Version 3 takes a star with a step for a restriction. The job then runs on
# every odd day and on every Monday, 18 times in January 2026 instead of twice. Two controllers of one cluster
# can thus run one schedule on different days. "*/1" still counts as a star.
set -euo pipefail
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
cat >main.go <<'END'
package main

import (
	"fmt"
	"time"

	first "github.com/robfig/cron"
	third "github.com/robfig/cron/v3"
)

// schedule is the interface of both versions.
type schedule interface{ Next(time.Time) time.Time }

func show(version string, runs schedule, err error) {
	if err != nil {
		panic(err)
	}
	days := []int{}
	next := runs.Next(time.Date(2025, 12, 31, 1, 0, 0, 0, time.UTC))
	for next.Year() == 2026 && next.Month() == time.January {
		days = append(days, next.Day())
		next = runs.Next(next)
	}
	fmt.Println(" ", version, days)
}

func main() {
	for _, text := range []string{"0 0 */2 * MON", "0 0 * * MON", "0 0 */1 * MON", "0 0 1 * */3"} {
		fmt.Println(text)
		old, err := first.ParseStandard(text)
		show("v1.2.0", old, err)
		current, err := third.ParseStandard(text)
		show("v3.0.1", current, err)
	}
}
END
go get github.com/robfig/cron@v1.2.0 github.com/robfig/cron/v3@v3.0.1 2>/dev/null
go run . | tee seen
diff - seen <<'END'
0 0 */2 * MON
  v1.2.0 [5 19]
  v3.0.1 [1 3 5 7 9 11 12 13 15 17 19 21 23 25 26 27 29 31]
0 0 * * MON
  v1.2.0 [5 12 19 26]
  v3.0.1 [5 12 19 26]
0 0 */1 * MON
  v1.2.0 [5 12 19 26]
  v3.0.1 [5 12 19 26]
0 0 1 * */3
  v1.2.0 []
  v3.0.1 [1 3 4 7 10 11 14 17 18 21 24 25 28 31]
END
