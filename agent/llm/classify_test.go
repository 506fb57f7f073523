package llm_test

import (
	"testing"

	"muntin/agent/llm"
)

// TestClassifyTexts has what providers are known to say, by status.
func TestClassifyTexts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		text   string
		want   llm.Class
	}{
		{400, "prompt is too long: 213462 tokens > 200000 maximum (invalid_request_error)", llm.ClassOverflow},
		{413, "Request exceeds the maximum size (request_too_large)", llm.ClassOverflow},
		{400, "Your input exceeds the context window of this model. (context_length_exceeded)", llm.ClassOverflow},
		{400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576). (INVALID_ARGUMENT)", llm.ClassOverflow},
		{400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", llm.ClassOverflow},
		{400, "Please reduce the length of the messages or completion.", llm.ClassOverflow},
		{400, "the request exceeds the available context size, try increasing it (exceed_context_size_error)", llm.ClassOverflow},
		{400, "tokens to keep from the initial prompt is greater than the context length", llm.ClassOverflow},
		{400, "invalid params, context window exceeds limit (2013)", llm.ClassOverflow},
		{400, "Your request exceeded model token limit: 262144", llm.ClassOverflow},
		{400, "Range of input length should be [1, 129024] (invalid_parameter_error)", llm.ClassOverflow},
		{500, "prompt too long; exceeded max context length by 4 tokens", llm.ClassOverflow},
		{429, "Too many tokens, please wait before trying again.", llm.ClassRetryable},
		{0, "Too many tokens, rate limit reached", llm.ClassRetryable},
		{529, "Overloaded (overloaded_error)", llm.ClassRetryable},
		{520, "", llm.ClassRetryable},
		{408, "", llm.ClassRetryable},
		{0, "Overloaded overloaded_error", llm.ClassRetryable},
		{0, "Internal server error api_error", llm.ClassRetryable},
		{0, "The model is at capacity, try again later", llm.ClassRetryable},
		{0, "Provider returned error", llm.ClassRetryable},
		{503, "The model is overloaded. Please try again later. (UNAVAILABLE)", llm.ClassRetryable},
		{429, "You exceeded your current quota, please check your plan and billing details. (insufficient_quota)", llm.ClassQuota},
		{402, "Insufficient Balance", llm.ClassQuota},
		{400, "Your credit balance is too low to access the Anthropic API.", llm.ClassQuota},
		{403, "GoUsageLimitError: monthly usage limit", llm.ClassQuota},
		{401, "invalid x-api-key (authentication_error)", llm.ClassAuth},
		{403, "Permission denied (PERMISSION_DENIED)", llm.ClassAuth},
		{400, "tools.0.name: String should match pattern (invalid_request_error)", llm.ClassInvalid},
		{404, "model: no-such-model (not_found_error)", llm.ClassInvalid},
		{501, "overloaded", llm.ClassInvalid},
		{400, "Throttling: too many tokens in this minute", llm.ClassRetryable},
		{498, "", llm.ClassRetryable},
		{0, "modelStreamErrorException: the model broke off", llm.ClassRetryable},
		{0, "serviceUnavailableException: later", llm.ClassRetryable},
		{0, "validationException: input is too long for the model", llm.ClassOverflow},
		{429, "Monthly quota exceeded", llm.ClassQuota},
	}
	for _, tt := range tests {
		if got := llm.ClassifyStatus(tt.status, tt.text); got != tt.want {
			t.Errorf("HTTP %d %q: %s, want %s", tt.status, tt.text, got, tt.want)
		}
	}
}
