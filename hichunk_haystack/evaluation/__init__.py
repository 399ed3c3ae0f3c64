# SPDX-FileCopyrightText: 2026-present the hichunk-haystack authors
#
# SPDX-License-Identifier: Apache-2.0

"""Measuring splitting, retrieval and answers: metrics as plain functions, data sets, and the benchmark."""
