// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are what a /metrics endpoint said at one moment.
type Metrics map[string]*dto.MetricFamily

func scrape(ctx context.Context, client *http.Client, url string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s answers %s", url, res.Status)
	}
	return parseMetrics(res.Body)
}

func parseMetrics(r io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return families, nil
}

// Gauge gives the value of a gauge without labels, 0 where there is none.
func (m Metrics) Gauge(name string) float64 {
	for _, s := range m[name].GetMetric() {
		return s.GetGauge().GetValue()
	}
	return 0
}

// Mean is how often something was timed, and how many seconds that took in all.
type Mean struct {
	Count   uint64
	Seconds float64
}

// Histograms gives, for each value of a label, the histogram's count and sum.
func (m Metrics) Histograms(name, label string) map[string]Mean {
	means := make(map[string]Mean)
	for _, s := range m[name].GetMetric() {
		key := labels(s)[label]
		had := means[key]
		means[key] = Mean{had.Count + s.GetHistogram().GetSampleCount(), had.Seconds + s.GetHistogram().GetSampleSum()}
	}
	return means
}

// Since gives what was added to histograms after an earlier look, those that
// nothing was added to left out.
func Since(before, after map[string]Mean) map[string]Mean {
	added := make(map[string]Mean)
	for key, a := range after {
		b := before[key]
		if a.Count > b.Count {
			added[key] = Mean{a.Count - b.Count, a.Seconds - b.Seconds}
		}
	}
	return added
}

func labels(s *dto.Metric) map[string]string {
	all := make(map[string]string, len(s.GetLabel()))
	for _, l := range s.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// Counts are how often each of several things happened.
type Counts map[string]int64

// Less gives what is left after taking others away; what comes to nothing is
// left out.
func (c Counts) Less(others Counts) Counts {
	left := make(Counts)
	for _, all := range []map[string]int64{c, others} {
		for key := range all {
			if n := c[key] - others[key]; n != 0 {
				left[key] = n
			}
		}
	}
	return left
}

// Total adds all up.
func (c Counts) Total() int64 {
	var n int64
	for _, v := range c {
		n += v
	}
	return n
}

// Keys gives the things, the most frequent first.
func (c Counts) Keys() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		if c[a] != c[b] {
			return int(c[b] - c[a])
		}
		return strings.Compare(a, b)
	})
}
